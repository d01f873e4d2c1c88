-- By default everything wakes a sandbox. Rows that have a former default get this one: ["api","message"] of those that rest when idle,
-- [] of those that end then.
UPDATE sandboxes SET wake_on = '["api","terminal","message","port"]'
WHERE wake_on = '["api","message"]' OR (wake_on = '[]' AND on_idle = 'destroy');
