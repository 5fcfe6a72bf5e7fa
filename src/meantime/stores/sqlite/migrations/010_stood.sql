-- How things stood when a run ended, with its notice: how many tasks of its batch had ended, how many of those had not
-- completed, how many there were, and how many tasks of its thread were active, without watches. A JSON array; NULL in
-- rows from before, and in what is not an ending.

ALTER TABLE notices ADD COLUMN stood TEXT CHECK (stood IS NULL OR kind = 0);
