/** The initial directory of simulations: hosts that have joined, and one organization. */
import type { OrgId } from "../../../shared/ids.ts";
import type { State } from "./state.ts";

export const ORG = "org_1" as OrgId;
const AT = "2026-01-01T00:00:00.000Z";

export function firstState(hosts: readonly string[], at: number): State {
  const row = (tbl: string, key: string, row: object) => [`${tbl} ${key}`, { tbl, key, row, seq: 1 }] as const;
  const org = { org_id: ORG, name: "one", plan: "starter", created_at: AT, ending_at: null, ended_at: null };
  return {
    cluster: new Map([["cluster", { cluster_id: "cluster", version: 1, seq: 1 }]]),
    changes: new Map([["1", { seq: 1, change_id: "first", host_id: "host-1", at }]]),
    rows: new Map([
      row("orgs", JSON.stringify([ORG]), { ...org, plan_by: "operator" }),
      ...hosts.map((host_id) => {
        const reached = { address: `${host_id}:1`, certificate: "certificate", url: `http://${host_id}`, labels: "{}" };
        return row("hosts", JSON.stringify([host_id]), { host_id, state: "active", ...reached, joined_at: AT });
      }),
    ]),
    leases: new Map(
      hosts.map((host_id) => {
        const lease = { host_id, incarnation: `of ${host_id}`, version: "", lease_until: at, load: {} };
        return [host_id, { ...lease, run: "", place: "", beat: 0, beat_id: "" }];
      }),
    ),
    done_calls: new Map(),
  };
}
