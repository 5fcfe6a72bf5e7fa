"""OpenCode: its sessions are told what ended, and work for us."""
