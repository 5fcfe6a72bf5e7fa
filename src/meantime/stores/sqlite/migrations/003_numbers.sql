-- Everything in numbers: what is shown is added up from this index alone, in its order, and no task is read.
CREATE INDEX tasks_numbers ON tasks (status, run > 1, agent, duration) WHERE hidden = 0;
