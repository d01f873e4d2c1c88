/** Owns the line that says what is being waited for. It is seen on a terminal only, and only after a second. */
const QUIET_MS = 1000;
const EVERY_MS = 200;
const CLEAR_LINE = "\r\u001b[K";

export interface Progress {
  /** What is being done now. */
  say(text: string): void;
}

/** Runs `work` with a line such as `creating sandbox a … 3 s` on standard error. */
export async function withProgress<T>(text: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const { stderr } = process;
  let now = text;
  let drawn = false;
  const start = performance.now();
  const draw = () => {
    const elapsed = performance.now() - start;
    if (elapsed < QUIET_MS) return;
    const end = ` … ${Math.floor(elapsed / 1000)} s`;
    // A line that wraps could not be cleared again.
    stderr.write(CLEAR_LINE + now.slice(0, (stderr.columns || 80) - end.length - 1) + end);
    drawn = true;
  };
  const timer = stderr.isTTY ? setInterval(draw, EVERY_MS) : undefined;
  try {
    return await work({
      say: (next) => {
        now = next;
      },
    });
  } finally {
    clearInterval(timer);
    if (drawn) stderr.write(CLEAR_LINE);
  }
}
