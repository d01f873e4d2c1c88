/** Requests of guests about their rooms. Guests that run already when the daemon starts may send some before the transport is open. */
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import type { GuestSandbox, makeGuestDoor } from "./door.ts";

type Door = ReturnType<typeof makeGuestDoor>;

export class GuestCalls {
  #door: Door | null = null;

  /** Requests are answered from now on. */
  open(door: Door): void {
    this.#door = door;
  }

  /** Handles the requests of one guest. */
  of(sandbox: GuestSandbox): ReturnType<Door> {
    let serve: ReturnType<Door> | undefined;
    return (stream: Stream, request) => {
      serve ??= this.#door?.(sandbox);
      if (serve) serve(stream, request);
      else stream.fail(StreamErrorCode.internal, "the service is starting");
    };
  }
}
