/** The call that lists the hosts of the service. */
import { hostList } from "../../../shared/api/hosts.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { ServiceDeps } from "./deps.ts";

export function makeHosts({ hosts, directoryAgeSeconds }: ServiceDeps): Bound {
  return bind(hostList, {
    run: async ({ caller }) => {
      // No caller: the request comes from the host itself.
      if (caller?.session && !caller.session.gives.includes("org:admin")) {
        throw new ServiceError("insufficient_scope", {
          detail: "Only owners and admins can see hosts.",
          details: { required: "org:admin" },
        });
      }
      return { outcome: "ok", body: { items: hosts(), directory_age_seconds: directoryAgeSeconds() } };
    },
  });
}
