/** Owns a command's stdin pipe: what the host sends goes in as fast as the command reads. */
import * as libc from "../libc.ts";

export class Input {
  readonly #fd: number;
  #open = true;

  /** Takes over the write end of a pipe, and feeds it from `chunks` until their end. */
  constructor(fd: number, chunks: AsyncIterable<Uint8Array>) {
    this.#fd = fd;
    libc.setNonBlocking(fd);
    void this.#feed(chunks);
  }

  /** Again is nothing. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    libc.close(this.#fd);
  }

  async #feed(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const sink = Bun.file(this.#fd).writer();
    try {
      for await (const chunk of chunks) {
        if (!this.#open) break;
        await sink.write(chunk);
        await sink.flush();
      }
    } catch {
      // The command closed its stdin: nothing more can be said to it, and it is free to.
    } finally {
      await Promise.resolve(sink.end()).catch(() => {});
      this.close();
    }
  }
}
