/** In place of ../build-on-host.ts: a client builds nothing itself, and has the service do it by `roomd template request`. */
import { ownConfiguration } from "./operator.ts";

export async function buildOnHost(): Promise<never> {
  return ownConfiguration({});
}
