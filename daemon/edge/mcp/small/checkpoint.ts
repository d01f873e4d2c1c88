/** The MCP tool `checkpoint` of the small set: named snapshots of the sandbox, and forks of it. */
import { sandboxFork, sandboxRollback, snapshotCreate, snapshotList } from "../../../../shared/api/snapshots.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { answerOf, failed, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { inPlace, type PlaceInput, placeOf, type SandboxAddress } from "./place.ts";

interface Input extends PlaceInput {
  action: "save" | "back" | "fork";
  name: string;
}

export async function checkpoint(call: ToolCall, { action, name, ...location }: Input): Promise<ToolAnswer> {
  const place = placeOf(call, location);
  if (action === "save") return await inPlace(call, place, () => save(call, place, name));
  return action === "back" ? await back(call, place, name) : await fork(call, place, name);
}

async function save(call: ToolCall, place: SandboxAddress, name: string): Promise<ToolAnswer> {
  const reply = await call.ask(snapshotCreate, { ...place, name });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  return { ok: true, result: { name, snapshot_id: reply.body.snapshot_id }, text: `saved ${name}` };
}

/** Reverts the sandbox to the newest snapshot of that name. */
async function back(call: ToolCall, place: SandboxAddress, name: string): Promise<ToolAnswer> {
  const { room_id, sandbox } = place;
  const found = await call.ask(snapshotList, { room_id, agent_id: sandbox, limit: 1000 });
  if (found.kind === "late") return stillUnderWay(call);
  if (found.kind === "problem") return answerOf(found);
  const items = found.body.items as Arguments[];
  const match = items.findLast((each) => each.name === name || each.snapshot_id === name);
  if (!match) {
    const names = items
      .map((each) => each.name)
      .filter(Boolean)
      .slice(-8)
      .join(", ");
    const detail = `There is no checkpoint ${name}.`;
    const hint =
      names === ""
        ? "The sandbox has none yet: the tool checkpoint with action save creates one."
        : `Checkpoints: ${names}.`;
    return failed(call.refuse(new ServiceError("snapshot_not_found", { detail, hint })));
  }
  const reply = await call.ask(sandboxRollback, { ...place, snapshot_id: match.snapshot_id });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  return { ok: true, result: { name, snapshot_id: match.snapshot_id }, text: `back at ${name}` };
}

async function fork(call: ToolCall, place: SandboxAddress, name: string): Promise<ToolAnswer> {
  const reply = await call.ask(sandboxFork, { ...place, agents: [{ agent_id: name }] });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const [item] = reply.body.items as { problem?: { detail?: string; code?: string } | null }[];
  if (item?.problem)
    return failed(call.refuse(new ServiceError("invalid_state", { detail: String(item.problem.detail) })));
  return { ok: true, result: { agent: name }, text: `forked: pass agent ${JSON.stringify(name)} to use the copy` };
}
