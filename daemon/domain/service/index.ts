/** The service as a whole, seen from outside: health, metrics, configuration, API description. */

import type { Bound } from "../../core/call/operation.ts";
import { makeConfig } from "./config.ts";
import type { ServiceDeps } from "./deps.ts";
import { makeHealth } from "./health.ts";
import { makeHosts } from "./hosts.ts";
import { makeLocate } from "./locate.ts";
import { makeMetrics } from "./metrics.ts";
import { makeOpenapi } from "./openapi.ts";
import { makeTop } from "./top.ts";

export type { Lookups } from "./locate.ts";

export function makeService(deps: ServiceDeps): { operations: Bound[] } {
  return {
    operations: [
      makeHealth(deps),
      makeMetrics(deps),
      makeTop(deps),
      makeConfig(deps),
      makeHosts(deps),
      makeLocate(deps),
      makeOpenapi(),
    ],
  };
}
