/** The guest's egress as a whole. It is set up before the guest has a sandbox, so that clones start with it. */
import type { HostConnection } from "../host-connection.ts";
import { log } from "../log.ts";
import type { Reaper } from "../reap.ts";
import { Connections } from "./connections.ts";
import { Names } from "./names.ts";
import { makeNetwork, removeRoutes } from "./network.ts";
import { Resolver } from "./resolver.ts";

export class Egress {
  readonly #reaper: Reaper;
  readonly #line: HostConnection;
  #made: Promise<boolean> = Promise.resolve(false);

  constructor(reaper: Reaper, line: HostConnection) {
    this.#reaper = reaper;
    this.#line = line;
  }

  /** Sets up egress. A guest that lacks a prerequisite has no network; the reason is logged. */
  make(): Promise<boolean> {
    this.#made = this.#make().then(
      () => true,
      (error) => {
        log("egress", error);
        return false;
      },
    );
    return this.#made;
  }

  /** Resolves once the network is set up: in a guest that boots without a template, this runs in parallel with the rest of the boot. */
  async settled(): Promise<void> {
    await this.#made;
  }

  /** Removes the network from a guest without egress. */
  async forbid(): Promise<void> {
    if (await this.#made) removeRoutes();
  }

  async #make(): Promise<void> {
    const names = new Names();
    // Creates the address that containers reach.
    await makeNetwork(this.#reaper);
    await new Resolver(this.#line, names).listen();
    await new Connections(this.#line, names).listen();
  }
}
