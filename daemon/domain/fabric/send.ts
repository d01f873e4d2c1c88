/** agent_send: sends a message to its destinations, and with wait_reply returns the reply. */

import type { InputOf } from "../../../shared/api/contract.ts";
import { agentSend, DEFAULT_REPLY_WAIT_MS } from "../../../shared/api/fabric.ts";
import { type Bound, bind, type RuleBreak } from "../../core/call/operation.ts";
import { findRoom, requireActive } from "../../core/call/room-target.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { addressOf, addressRules, isToOne } from "./address.ts";
import type { FabricDeps } from "./deps.ts";
import { contentRules, namedBy } from "./draft.ts";
import { callsForRecipients, post } from "./post.ts";
import { draftOf, factsOf, keptFactsOf } from "./prepare.ts";
import { receiptOf, toMessage } from "./record.ts";
import type { MessageRow } from "./table.ts";
import { tellRead } from "./trace.ts";
import { awaitReply, waitForReply } from "./wait-reply.ts";

type Input = InputOf<typeof agentSend>;

export function makeSend(deps: FabricDeps): Bound {
  const { queries } = deps.database;
  return bind(agentSend, {
    find: (call, params) => findRoom(deps, call, params),
    rules: (input, _, bad) => {
      const address = addressRules(input, bad);
      return [...(address.length > 0 ? address : waitRules(input)), ...contentRules(input)];
    },
    moreCalls: (input, room) => callsForRecipients(deps, room, [addressOf(input)]),
    run: async (call, input, room) => {
      requireActive(room);
      const usual = input.wait_reply ? "request" : "event";
      const draft = draftOf(deps, call, room, namedBy(call.work, input), { usual });
      const { source } = draft;
      call.audit.agent_id = source;
      const waits = input.wait_reply ? { wait_ms: input.timeout_ms ?? DEFAULT_REPLY_WAIT_MS } : {};
      call.audit.details = { ...factsOf(draft), ...waits };
      const recipient = input.wait_reply ? (draft.destination ?? draft.destinations?.[0] ?? null) : null;
      const wait = recipient === null ? null : waitForReply(deps, room, source, recipient);
      try {
        const note = (row: MessageRow) => Object.assign(call.audit.details, keptFactsOf(draft, row));
        const { row, isNew } = await post(deps, room, draft, {
          caller: call.caller,
          signal: () => call.signal,
          trace: call.trace,
          also: (_, { message_id }) => {
            if (!wait) return;
            wait.shown.id = message_id;
            deps.agents.waits.enter(room.room_uid, wait);
          },
          kept: ([{ row, isNew }]) => {
            note(row);
            if (!wait) call.work.keep(isNew ? "accepted" : "known", receiptOf(queries, row, isNew));
          },
        });
        note(row);
        const receipt = receiptOf(queries, row, isNew);
        if (recipient === null) return { outcome: isNew ? "accepted" : "known", body: receipt };
        const deadlineMs = input.timeout_ms ?? DEFAULT_REPLY_WAIT_MS;
        const reply = await awaitReply(deps, row, {
          ...{ source, recipient, owner: ownerOf(call.caller.org_id), deadlineMs, signal: call.signal },
          isFirst: (found) => tellRead(deps.traces, { agent_id: source, ...room, trace: call.trace }, found),
        });
        return { outcome: "replied", body: { ...receiptOf(queries, row, false), reply: toMessage(reply) } };
      } finally {
        if (wait) deps.agents.waits.leave(room.room_uid, wait);
      }
    },
  });
}

function waitRules(input: Partial<Input>): RuleBreak[] {
  if (!input.wait_reply || isToOne(addressOf(input))) return [];
  return [{ field: "wait_reply", code: "one_recipient", message: "wait_reply is for a message to one agent." }];
}
