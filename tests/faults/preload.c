/* A library that makes a daemon of every program it is loaded into: twice forked, a session of its own, no
   descriptors, deaf to what asks it to stop. With FAULT_WIPE it clears its environment, too. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

__attribute__((constructor)) static void daemonise(void) {
  const char *up = getenv("UP");
  char path[4096];
  char said[32];
  if (up == NULL || strlen(up) >= sizeof path) return;
  strcpy(path, up);
  int wipe = getenv("FAULT_WIPE") != NULL;
  if (fork() != 0) return; /* the program itself goes on */
  setsid();
  if (fork() != 0) _exit(0);
  for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
  if (wipe)
    for (char **each = environ; *each != NULL; each++) memset(*each, 0, strlen(*each));
  for (int fd = 0; fd < 1024; fd++) close(fd);
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  int length = snprintf(said, sizeof said, "%d\n", (int)getpid());
  if (write(file, said, (size_t)length) != length) _exit(1);
  close(file);
  sleep(300);
  _exit(0);
}
