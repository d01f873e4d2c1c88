/** An error that carries the host by which a call is carried out, or has been carried out. The pipeline forwards the call to it. */
import type { Host } from "./directory.ts";

export class Elsewhere extends Error {
  readonly host: Host;

  constructor(host: Host) {
    super(host.host_id);
    this.host = host;
  }
}
