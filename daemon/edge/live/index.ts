/** The call that opens a live connection, and all connections that are open. */
import { liveSocket } from "../../../shared/api/overview/live.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { requireWebSocket } from "../../core/concurrency/duplex-session.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Hold } from "../pipeline/call-lifetime.ts";
import { LiveConnection } from "./connection.ts";

export { LiveConnection } from "./connection.ts";

const MAX_CONNECTIONS = 1000;
/** Limit per organization, so that none takes all connections. */
const MAX_OF_ORG = 250;

export interface Live {
  operations: Bound[];
  stop(): void;
}

export function makeLive({ hold }: { hold: Hold }): Live {
  const open = new Map<LiveConnection, string>();
  const bound = bind(liveSocket, {
    run: ({ caller }, _input, _target, transfer) => {
      requireWebSocket(transfer);
      const ofOrg = [...open.values()].filter((orgId) => orgId === caller.org_id).length;
      if (open.size >= MAX_CONNECTIONS || ofOrg >= MAX_OF_ORG) {
        throw new ServiceError("rate_limited", {
          detail: `At most ${MAX_OF_ORG} live connections of an organization can be open, and ${MAX_CONNECTIONS} in all.`,
          retryAfterSeconds: 5,
        });
      }
      let letGo = () => {};
      const connection = new LiveConnection(ownerOf(caller.org_id), () => {
        open.delete(connection);
        letGo();
      });
      open.set(connection, caller.org_id);
      // The operator's key and guests authenticate in another way, and each of their streams is checked separately.
      const held = caller.session ?? (caller.kind ? null : caller.key_id);
      if (held !== null)
        letGo = hold(held, () => connection.end("unauthorized", "the credentials are no longer valid"));
      return { outcome: "opened", conversation: connection };
    },
  });
  return {
    operations: [bound],
    stop: () => {
      for (const connection of [...open.keys()]) connection.end("going_away", "the service is stopping");
    },
  };
}
