/** Owns that a call is another host's to carry out, or has been carried out there. */
import type { Host } from "../cluster/directory.ts";

export class Elsewhere extends Error {
  readonly host: Host;

  constructor(host: Host) {
    super(host.host_id);
    this.host = host;
  }
}
