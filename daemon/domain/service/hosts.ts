/** The call that lists the hosts of the service. */
import { hostList } from "../../../shared/api/hosts.ts";
import { type Bound, bind } from "../../core/operation.ts";
import type { ServiceDeps } from "./deps.ts";

export function makeHosts({ hosts, directoryAgeSeconds }: ServiceDeps): Bound {
  return bind(hostList, {
    run: async () => ({ outcome: "ok", body: { items: hosts(), directory_age_seconds: directoryAgeSeconds() } }),
  });
}
