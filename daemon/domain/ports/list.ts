/** The call that lists a sandbox's exposed ports. */
import { portList } from "../../../shared/api/ports.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { listeningPorts } from "./listening.ts";
import type { PortParts } from "./parts.ts";
import { toPortRecord } from "./record.ts";
import { listPorts } from "./store.ts";

export function makeList(parts: PortParts): Bound {
  const { database, sandboxes } = parts;
  return bind(portList, {
    find: (call, params) => sandboxes.find(call, params),
    run: async (_call, _input, { row: { sandbox_id } }) => {
      const rows = listPorts(database.queries, sandbox_id);
      const numbers = rows.map(({ port }) => port);
      const listening = await listeningPorts(sandboxes, sandbox_id, numbers);
      const items = rows.map((row) => toPortRecord(parts, row, listening.has(row.port)));
      return { outcome: "ok", body: { items, next_cursor: null } };
    },
  });
}
