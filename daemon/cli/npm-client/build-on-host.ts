/** Replaces ../host/build-on-host.ts in the npm client, which cannot build: the service builds on `roomd template request`. */
import { ownConfiguration } from "./operator.ts";

export async function buildOnHost(): Promise<never> {
  return ownConfiguration({});
}
