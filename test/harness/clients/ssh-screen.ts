/** `ssh` in a real pseudo-terminal, as a person has it: displayed text, typed keys, the window's size. */
import type { SshClient } from "./ssh-client.ts";

const SHOWN_MS = 20_000;

export class SshScreen implements AsyncDisposable {
  readonly #child: Bun.Subprocess;
  #shown = "";
  #changed = Promise.withResolvers<void>();

  constructor(client: SshClient, user: string, { rows, cols }: { rows: number; cols: number }, words: string[] = []) {
    const decoder = new TextDecoder();
    this.#child = Bun.spawn(["ssh", ...client.options, "-tt", "-l", user, "127.0.0.1", ...words], {
      env: { ...process.env, TERM: "xterm-256color" },
      terminal: {
        rows,
        cols,
        data: (_, bytes) => {
          this.#shown += decoder.decode(bytes, { stream: true });
          const changed = this.#changed;
          this.#changed = Promise.withResolvers();
          changed.resolve();
        },
      },
    });
  }

  get shown(): string {
    return this.#shown;
  }

  /** ssh's own exit status. */
  get status(): Promise<number> {
    return this.#child.exited;
  }

  type(text: string): void {
    this.#child.terminal?.write(text);
  }

  resize(rows: number, cols: number): void {
    this.#child.terminal?.resize(cols, rows);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Resolves once the displayed text matches. */
  async until(pattern: RegExp): Promise<void> {
    const deadline = AbortSignal.timeout(SHOWN_MS);
    const late = new Promise<never>((_, reject) =>
      deadline.addEventListener("abort", () => reject(new Error(`${pattern} was not shown:\n${this.#shown}`))),
    );
    while (!pattern.test(this.#shown)) await Promise.race([this.#changed.promise, late]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.#child.exited;
    this.#child.terminal?.close();
  }
}
