/** Prepares a message to be stored, whether it is sent alone or in a batch. */
import type { InputOf } from "../../../shared/api/contract.ts";
import type { messageSendMany } from "../../../shared/api/fabric.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import { actingAs } from "../agents/index.ts";
import { addressOf, shownAddress, shownTo } from "./address.ts";
import type { FabricDeps } from "./deps.ts";
import { type Draft, makeDraft } from "./draft.ts";
import { requireMessage } from "./find.ts";
import type { MessageRow } from "./table.ts";
import { traceOf } from "./trace.ts";

export type Preparation = InputOf<typeof messageSendMany>["messages"][number];

/** The draft of a message; `usual` is the default for its kind. Throws source_mismatch, message_not_found, payload_too_large. */
export function draftOf(
  deps: FabricDeps,
  call: KeyCall,
  room: RoomTarget,
  input: Preparation,
  { usual = "event", before = [] }: { usual?: Draft["kind"]; before?: readonly Draft[] } = {},
): Draft {
  const source = actingAs(call.caller, input.source, "source");
  const reply_to = input.reply_to ?? null;
  const kind = input.kind ?? (usual === "event" && reply_to !== null ? "response" : usual);
  const draft = makeDraft(input, { source, kind, reply_to, ...addressOf(input) });
  call.trace.follow(traceOf(input.headers));
  if (reply_to !== null) {
    // It may reply to a message of the same batch.
    const request = before.find(({ message_id }) => message_id === reply_to) ?? requireMessage(deps, room, reply_to);
    call.trace.answer(traceOf(request.headers));
  }
  return draft;
}

/** Audit details of a message before it is stored. */
export function factsOf(draft: Draft): Record<string, unknown> {
  const { kind, size_bytes, payload_sha256 } = draft;
  return { kind, ...shownAddress(draft), size_bytes, payload_sha256 };
}

/** Further audit details of a message once it is stored. */
export function keptFactsOf(draft: Draft, { message_id, seq, recipients }: MessageRow): Record<string, unknown> {
  return { message_id, seq, recipients: recipients.length, ...shownTo(draft, recipients) };
}
