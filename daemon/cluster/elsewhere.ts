/** An error with the host that executes a call, or has executed it. The pipeline forwards the call to that host. */
import type { Host } from "./directory.ts";

export class Elsewhere extends Error {
  readonly host: Host;

  constructor(host: Host) {
    super(host.host_id);
    this.host = host;
  }
}
