/** Saves an execution's streams on the drive as they arrive. If the drive rejects further data, the command continues. */
import { Channel } from "../../../../../shared/agent-protocol/messages.ts";
import type { Piece } from "../../../../../shared/agent-protocol/pieces.ts";
import type { ExecutionRecord } from "../../../../../shared/api/executions.ts";
import { ServiceError } from "../../../../core/service-error.ts";
import { Handoff } from "./handoff.ts";

export interface SavedStream {
  path: string;
  size_bytes: number;
  sha256: string;
}

/** Saves two streams as the files `stdout` and `stderr` of a drive directory, each completely or not at all. */
export type SaveStreams = (
  streams: Record<"stdout" | "stderr", AsyncIterable<Uint8Array>>,
) => Promise<Record<"stdout" | "stderr", SavedStream>>;

export class Saving {
  readonly #path: string;
  readonly #handoffs = { stdout: new Handoff(), stderr: new Handoff() };
  readonly #saved: ReturnType<SaveStreams>;

  constructor(path: string, save: SaveStreams) {
    this.#path = path;
    this.#saved = save(this.#handoffs);
    // Awaited when the command has exited.
    this.#saved.catch(() => {});
  }

  async take(pieces: readonly Piece[]): Promise<void> {
    for (const { channel, bytes } of pieces) {
      await this.#handoffs[channel === Channel.stdout ? "stdout" : "stderr"].put(bytes);
    }
  }

  /** All output has arrived: moves the files to their final paths. Rejects with ServiceError. */
  async finish(): Promise<NonNullable<ExecutionRecord["output"]>> {
    this.#handoffs.stdout.end();
    this.#handoffs.stderr.end();
    const { stdout, stderr } = await this.#saved;
    return { path: this.#path, state: "saved", stdout: shown(stdout), stderr: shown(stderr), error_code: null };
  }

  /** Why nothing was saved. */
  failed(error: unknown): NonNullable<ExecutionRecord["output"]> {
    const error_code = error instanceof ServiceError ? error.code : "internal";
    return { path: this.#path, state: "failed", stdout: null, stderr: null, error_code };
  }

  /** The output is incomplete: nothing is saved. */
  abandon(): void {
    this.#handoffs.stdout.fail();
    this.#handoffs.stderr.fail();
  }
}

function shown({ path, size_bytes, sha256 }: SavedStream): SavedStream {
  return { path, size_bytes, sha256 };
}
