/** The agent's current link to the host, for the parts that open streams of their own. */
import type { Link, Stream } from "../shared/agent-protocol/link.ts";
import type { GuestRequest } from "../shared/agent-protocol/messages.ts";

export class HostConnection {
  #link: Link | null = null;

  attach(link: Link): void {
    this.#link = link;
  }

  detach(link: Link): void {
    if (this.#link === link) this.#link = null;
  }

  /** Throws while there is no link. */
  ask(request: GuestRequest): Stream {
    if (!this.#link) throw new Error("the host is not connected");
    return this.#link.open(request);
  }
}
