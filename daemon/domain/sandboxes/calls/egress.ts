/** Operations on a sandbox's egress list. */
import { egressExplain, egressGet, egressSet, sandboxNetwork } from "../../../../shared/api/egress.ts";
import { LIVE_STATES } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind, type RuleBreak } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { readPlace, withoutNetwork } from "../../egress/index.ts";
import type { SandboxDeps } from "../deps.ts";
import { egressOf, egressRules, listOf } from "../egress-list.ts";
import { findTarget, findTargetEver } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { SandboxRow } from "../table.ts";

const NO_HOST: RuleBreak = {
  field: "host",
  code: "pattern",
  message: "host is neither an address, a CIDR nor a host name.",
};

export function makeEgressCalls(deps: SandboxDeps, supervisors: Supervisors): Bound[] {
  const toRecord = (row: SandboxRow) => ({
    mode: row.egress_mode,
    allowlist: row.egress_allowlist,
    revision: row.egress_revision,
    guest_net: row.guest_net,
    ...deps.egress.trafficOf(row.sandbox_id),
  });
  return [
    bind(egressGet, {
      find: (call, params) => findTarget(deps, call, params),
      run: (_call, _input, { row }) => ({ outcome: "ok", body: toRecord(row) }),
    }),
    bind(sandboxNetwork, {
      find: (call, params) => findTargetEver(deps, call, params),
      run: ({ caller }, _input, { row }) => {
        const { sandbox_id, agent_id } = row;
        const network = deps.egress.networkOf(row);
        // A guest must not learn the addresses that names resolve to.
        const items =
          caller.agent_id === null
            ? network.items
            : network.items.map((item) => (item.host === null ? item : { ...item, ip: null }));
        return { outcome: "ok", body: { sandbox_id, agent_id, ...network, items } };
      },
    }),
    bind(egressExplain, {
      find: (call, params) => findTarget(deps, call, params),
      rules: ({ host = "" }) => (readPlace(host) ? [] : [NO_HOST]),
      run: async (_call, { host, port = null }, { row }) => {
        const place = readPlace(host);
        if (!place) throw new ServiceError("validation_failed", { errors: [NO_HOST] });
        const body = row.guest_net
          ? await deps.egress.explain(row, listOf(row), place, port)
          : withoutNetwork(place, port);
        return { outcome: "ok", body };
      },
    }),
    bind(egressSet, {
      find: (call, params) => findTarget(deps, call, params),
      rules: ({ allowlist }) => egressRules("allowlist", allowlist),
      run: async (call, { allowlist, if_revision }, { room, row }) => {
        requireActive(room);
        requireState(row, LIVE_STATES);
        const supervisor = supervisors.get(row.sandbox_id);
        if (!supervisor) throw new ServiceError("guest_unreachable");
        if (!row.guest_net) {
          throw new ServiceError("invalid_state", {
            detail: `Sandbox ${row.agent_id} was created with enable_guest_net false, and has no network.`,
            details: { state: row.state, allowed_states: [] },
            hint: "Create a sandbox without enable_guest_net false.",
          });
        }
        const before = listOf(row);
        const changed = await supervisor.changeBy((current) => {
          requireState(current, LIVE_STATES);
          const revision = current.egress_revision;
          if (if_revision !== undefined && if_revision !== revision) throw changedMeanwhile(revision);
          return { ...egressOf(allowlist, true, "none"), egress_revision: revision + 1 };
        });
        deps.egress.setAllowlist(changed.sandbox_id, listOf(changed));
        call.audit.details = { before, after: listOf(changed), revision: changed.egress_revision };
        return { outcome: "ok", body: toRecord(changed) };
      },
    }),
  ];
}

function changedMeanwhile(revision: number): ServiceError {
  return new ServiceError("precondition_failed", {
    detail: `The egress list has revision ${revision}.`,
    details: { revision },
    hint: "Read the list again, and apply the change to the current list.",
  });
}
