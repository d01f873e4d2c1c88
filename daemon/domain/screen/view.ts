/** Operations for live views of a screen: a ticket for it, and the WebSocket of a viewer. */
import { screenTicket, screenView } from "../../../shared/api/screen.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import type { Tickets } from "../../core/call/tickets.ts";
import { requireWebSocket } from "../../core/concurrency/duplex-session.ts";
import { ServiceError } from "../../core/service-error.ts";
import { connect } from "./connect.ts";
import type { ScreenDeps } from "./deps.ts";
import { Viewer } from "./viewer.ts";
import type { Viewers } from "./viewers.ts";

/** Prefixes of the tickets, by which people distinguish them. */
const PREFIX = { drives: "sdt_", looks: "svt_" } as const;

/** Target of a screen's ticket. */
export interface ScreenGoal {
  sandbox_id: string;
  drives: boolean;
}

export function makeTicket(deps: ScreenDeps, tickets: Tickets<ScreenGoal>): Bound {
  return bind(screenTicket, {
    find: (call, params) => deps.sandboxes.find(call, params),
    run: async (call, { drive = false }, target) => {
      call.audit.details = { drives: drive };
      const { room, row } = target;
      // No ticket without a screen.
      (await connect(deps, call, target)).close();
      const place = ["rooms", room.room_id, "sandboxes", row.agent_id, "screen", "ws"];
      const { token, expires_at } = tickets.make(drive ? PREFIX.drives : PREFIX.looks, call.caller, {
        sandbox_id: row.sandbox_id,
        drives: drive,
      });
      const ws_path = `/v1/${place.map(encodeURIComponent).join("/")}?ticket=${token}`;
      return { outcome: "created", body: { ws_path, ticket: token, drives: drive, expires_at } };
    },
  });
}

export function makeView(deps: ScreenDeps, tickets: Tickets<ScreenGoal>, viewers: Viewers): Bound {
  /** Goals of callers that authenticated with a ticket, for that one call. */
  const goals = new WeakMap<Caller, ScreenGoal>();
  return bind(screenView, {
    admit: (token, params) => {
      const kept = tickets.open(token, params, deps);
      if (!kept) {
        throw new ServiceError("invalid_api_key", {
          detail: "The ticket is not valid for this screen, or has expired.",
          hint: "Create another ticket with `roomd screen ROOM AGENT --ticket`.",
        });
      }
      const caller = { ...kept.caller };
      goals.set(caller, kept.goal);
      return caller;
    },
    find: (call, params) => deps.sandboxes.find(call, params),
    run: async (call, _input, target, transfer) => {
      requireWebSocket(transfer);
      // If a key is sent with a ticket, the key authenticates.
      const drives = goals.get(call.caller)?.drives ?? false;
      call.audit.details = { drives };
      const leave = viewers.enter(target);
      try {
        const viewer = new Viewer(await connect(deps, call, { ...target, isLookedAt: !drives }), drives);
        // Watches the viewer from now on, even if its record fails.
        viewers.keep(call, target.row.sandbox_id, viewer, { drives, leave });
        if (drives)
          await viewers.recordBegun(call).catch((error: unknown) => {
            viewer.left();
            throw error;
          });
        return { outcome: "attached", conversation: viewer };
      } catch (error) {
        leave();
        throw error;
      }
    },
  });
}
