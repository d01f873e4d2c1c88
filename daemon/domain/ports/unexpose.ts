/** The call that unexposes a port. */
import { sandboxUnexposePort } from "../../../shared/api/ports.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { PortParts } from "./parts.ts";
import { deletePort, findPort } from "./store.ts";

export function makeUnexpose({ database, sandboxes, exposures }: PortParts): Bound {
  return bind(sandboxUnexposePort, {
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { port }, { row: { sandbox_id, agent_id } }) => {
      call.audit.details = { port };
      const removed = await database.commit((queries) =>
        findPort(queries, sandbox_id, port) ? deletePort(queries, sandbox_id, port) : undefined,
      );
      if (!removed) {
        throw new ServiceError("port_not_exposed", { detail: `Port ${port} of sandbox ${agent_id} is not exposed.` });
      }
      exposures.forget(removed, "the port is no longer exposed");
      return { outcome: "unexposed", body: { port, state: "unexposed" as const } };
    },
  });
}
