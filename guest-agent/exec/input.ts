/** A command's standard input: a pipe that is filled as fast as the command reads, and the position up to which it has been filled. */
import * as libc from "../libc.ts";

export class Input {
  readonly #sink: Bun.FileSink | null;
  #isBroken = false;
  #taken: () => void = () => {};
  #open: boolean;
  #received = 0;
  #turn: Promise<unknown> = Promise.resolve();

  /** Takes ownership of the write end of a pipe; null: a command without standard input. */
  constructor(fd: number | null) {
    this.#open = fd !== null;
    if (fd === null) {
      this.#sink = null;
      return;
    }
    libc.setNonBlocking(fd);
    // Bun writes to a duplicate of the descriptor, so ours can be closed.
    this.#sink = Bun.file(fd).writer();
    libc.close(fd);
  }

  /** Bytes that the pipe has accepted, or that were discarded since no process reads any more. */
  get received(): number {
    return this.#received;
  }

  /** Whether more may be written. */
  get isOpen(): boolean {
    return this.#open && !this.#isBroken;
  }

  /** Serializes writers: each writes without interruption by another. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Resolves once the pipe has accepted them. After the command has closed its standard input, as it is free to, bytes are discarded. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#sink && this.isOpen) {
      // Not by Promise.race with one long-lived promise: each write would leave memory there.
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#taken = resolve;
      void this.#put(this.#sink, bytes).then(resolve);
      await promise;
    }
    this.#received += bytes.byteLength;
  }

  end(): void {
    if (!this.#open) return;
    this.#open = false;
    void Promise.try(() => this.#sink?.end()).catch(() => {});
  }

  /** The command has ended: further bytes are discarded. */
  abandon(): void {
    this.#break();
    this.end();
  }

  async #put(sink: Bun.FileSink, bytes: Uint8Array): Promise<void> {
    try {
      await sink.write(bytes);
      await sink.flush();
    } catch {
      this.#break();
    }
  }

  #break(): void {
    this.#isBroken = true;
    this.#taken();
  }
}
