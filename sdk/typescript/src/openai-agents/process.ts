/** A command that a model runs: its output that was not returned yet, and its result. */
import { setTimeout as sleep } from "node:timers/promises";
import type { CommandResult, Execution } from "../execution.ts";
import { exitCodeOf } from "../exit-code.ts";

/** Limit of output that was not returned yet, of which the end is kept. */
const MAX_CHARACTERS = 1024 * 1024;
const MAX_WAIT_MS = 3_600_000;
const STREAMS = ["stdout", "stderr"] as const;

export interface ShownOutput {
  /** Both streams, in order of arrival. */
  output: string;
  stdout: string;
  stderr: string;
}

export class Process {
  readonly hasTerminal: boolean;
  readonly #execution: Execution;
  readonly #unseen = { output: new Tail(), stdout: new Tail(), stderr: new Tail() };
  readonly #ended: Promise<void>;
  #end: CommandResult | null = null;
  /** The error that prevented learning the command's outcome. */
  #lost: unknown = null;

  constructor(execution: Execution, hasTerminal: boolean, signal: AbortSignal) {
    this.#execution = execution;
    this.hasTerminal = hasTerminal;
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const onOutput = (stream: "stdout" | "stderr", bytes?: Uint8Array) => {
      const text = decoders[stream].decode(bytes, { stream: bytes !== undefined });
      this.#unseen.output.add(text);
      this.#unseen[stream].add(text);
    };
    this.#ended = execution.wait({ signal, maxOutputBytes: 0, onOutput: onOutput }).then(
      (end) => {
        for (const stream of STREAMS) onOutput(stream);
        if (end.timedOut) this.#unseen.output.add("[The command ran longer than it may, and was killed.]\n");
        this.#end = end;
      },
      (error: unknown) => {
        this.#lost = error;
      },
    );
  }

  get isOver(): boolean {
    return this.#end !== null || this.#lost !== null;
  }

  /** Null while it runs. Throws if the result can no longer be determined. */
  exitCode(): number | null {
    if (this.#lost !== null) throw this.#lost;
    return this.#end && exitCodeOf(this.#end);
  }

  /** Waits for its end, at most `waitMs`. */
  async until(waitMs: number): Promise<void> {
    const waited = new AbortController();
    const late = sleep(Math.min(waitMs, MAX_WAIT_MS), undefined, { signal: waited.signal }).catch(() => {});
    await Promise.race([this.#ended, late]);
    waited.abort();
  }

  /** The output since the last call. */
  take(): ShownOutput {
    const { output, stdout, stderr } = this.#unseen;
    return { output: output.take(), stdout: stdout.take(), stderr: stderr.take() };
  }

  write(text: string): Promise<void> {
    return this.#execution.write(text);
  }

  async interrupt(): Promise<void> {
    await this.#execution.signal("SIGINT");
  }

  kill(): Promise<void> {
    return this.#execution.giveUp();
  }
}

/** Bounded tail of a growing text. */
class Tail {
  #text = "";
  #dropped = 0;

  add(text: string): void {
    this.#text += text;
    // Not at each small piece.
    if (this.#text.length > 2 * MAX_CHARACTERS) this.#cut();
  }

  take(): string {
    this.#cut();
    // A notice in this form survives the truncation to a number of tokens.
    const notice = this.#dropped > 0 ? `[...${this.#dropped} characters truncated from process output...]\n` : "";
    const text = notice + this.#text;
    this.#text = "";
    this.#dropped = 0;
    return text;
  }

  #cut(): void {
    const over = this.#text.length - MAX_CHARACTERS;
    if (over <= 0) return;
    this.#text = this.#text.slice(over);
    this.#dropped += over;
  }
}
