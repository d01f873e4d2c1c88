/** Lifetime of a call: as long as its key is valid, and at most until its response has been read to the end or its client is gone. */
import type { Operation } from "../../../shared/api/contract.ts";
import type { KeyId } from "../../../shared/ids.ts";
import { untilEnd } from "../../core/call/event-streams.ts";
import type { Done, HeldSession } from "../../core/call/operation.ts";
import { loopTime } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Calls `cut` when the key or session becomes invalid; the returned function unsubscribes. */
export type Hold = (held: KeyId | HeldSession, cut: () => void) => () => void;

export class CallLifetime {
  readonly #client: () => AbortSignal;
  /** Rejected when the key becomes invalid; created at the first wait. */
  #lost: PromiseWithResolvers<never> | null = null;
  readonly #letGo: () => void;
  /** The reason that the key is no longer valid. */
  #reason: ServiceError | null = null;
  /** Created when the signal is first used: most calls end before. */
  #cut: AbortController | null = null;
  #signal: AbortSignal | null = null;

  /** `isKept`: the effect is already stored. Such a call may have ended the session itself, and gets its response. */
  constructor(hold: Hold, held: KeyId | HeldSession, client: () => AbortSignal, isKept: () => boolean) {
    this.#client = client;
    this.#letGo = hold(held, () => {
      if (typeof held !== "string" && isKept()) return;
      this.#reason =
        typeof held === "string"
          ? new ServiceError("invalid_api_key", { detail: "The key expired during the call." })
          : new ServiceError("session_ended", {
              detail: "The session ended during the call, or its permissions changed.",
            });
      this.#cut?.abort(this.#reason);
      this.#lost?.reject(this.#reason);
    });
  }

  /** Aborts when the client disconnects or the key becomes invalid. */
  get signal(): AbortSignal {
    this.#signal ??= this.#makeSignal();
    return this.#signal;
  }

  #makeSignal(): AbortSignal {
    const client = this.#client();
    this.#cut = new AbortController();
    if (this.#reason) this.#cut.abort(this.#reason);
    client.addEventListener("abort", this.#letGo, { once: true });
    if (client.aborted) this.#letGo();
    return AbortSignal.any([client, this.#cut.signal]);
  }

  /** Throws invalid_api_key if the key became invalid since the call arrived. */
  require(): void {
    if (this.#reason) throw this.#reason;
  }

  /** Settles like the work, or throws invalid_api_key as soon as the key is lost: then the response of the work is discarded. */
  async until(work: Promise<Done<Operation>>): Promise<Done<Operation>> {
    this.#lost ??= Promise.withResolvers<never>();
    if (this.#reason) this.#lost.reject(this.#reason);
    try {
      return await Promise.race([work, this.#lost.promise]);
    } catch (error) {
      if (this.#reason) work.then(discard, () => {});
      throw error;
    }
  }

  /** The call is over; a streamed response stays subscribed to the key until it is read. */
  end(done: Done<Operation> | null): Done<Operation> | null {
    const letGo = this.#letGo;
    if (done?.events) {
      const { events, lines, cancel } = done.events;
      const over = () => {
        letGo();
        cancel();
      };
      const held = { ...done.events, events: untilEnd(events, letGo), cancel: over };
      return { ...done, events: lines ? { ...held, lines: untilEnd(lines, letGo) } : held };
    }
    if (done?.stream) {
      const { type, bytes } = done.stream;
      return { ...done, stream: { type, bytes: streamUntilRead(bytes, letGo) } };
    }
    if (done?.bytes) return { ...done, bytes: { ...done.bytes, stream: streamUntilRead(done.bytes.stream, letGo) } };
    // A conversation watches the key itself.
    letGo();
    return done;
  }
}

/** Ends responses without a reader. */
export function discard({ events, bytes, stream, conversation }: Done<Operation>): void {
  events?.cancel();
  conversation?.left();
  for (const each of [bytes?.stream, stream?.bytes]) each?.cancel().catch(() => {});
}

function streamUntilRead(stream: ReadableStream<Uint8Array>, over: () => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  const go = loopTime.continuation("stream");
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        go();
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          over();
          controller.close();
        } catch (error) {
          over();
          throw error;
        }
      },
      cancel: async (reason) => {
        over();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
