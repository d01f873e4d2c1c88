/** The MCP tool `close` of the small set: ends a room with its sandboxes. */
import { operations } from "../../../../shared/api/operations.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { ownRoom } from "./place.ts";

export async function close(call: ToolCall, { room }: { room?: string }): Promise<ToolAnswer> {
  const room_id = room ?? ownRoom(call);
  const drive = room_id === ownRoom(call) ? { drive: "delete" } : {};
  const reply = await call.ask(operations.room_destroy, { room_id, ...drive });
  if (reply.kind === "late") return stillUnderWay(call);
  // The close of a default room that does not exist succeeds.
  if (reply.kind === "problem" && (room !== undefined || reply.problem.code !== "room_not_found"))
    return answerOf(reply);
  return { ok: true, result: { room: room_id, state: "closed" }, text: `closed ${room_id}` };
}
