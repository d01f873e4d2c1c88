/** The room and the sandbox of the small set: the caller's own by default, created when a call needs them. */
import { roomCreate } from "../../../../shared/api/rooms.ts";
import { sandboxCreate } from "../../../../shared/api/sandboxes.ts";
import type { ToolAnswer } from "../answer.ts";
import type { Arguments, Reply, ToolCall } from "../call.ts";

export const DEFAULT_AGENT = "main";
/** The SDKs' default lifetimes of a sandbox with its own room. */
const TTL_SECONDS = 86_400;
const IDLE_SECONDS = 900;
const OWN_ROOM_CHARACTERS = 8;

export interface PlaceInput {
  room?: string;
  agent?: string;
}

export interface SandboxAddress {
  room_id: string;
  sandbox: string;
}

export function placeOf(call: ToolCall, { room, agent }: PlaceInput): SandboxAddress {
  return { room_id: room ?? ownRoom(call), sandbox: agent ?? DEFAULT_AGENT };
}

/** The default room of a key, shared by all of its sessions. */
export const ownRoom = ({ keyId }: ToolCall): string => `mcp-${keyId.slice(-OWN_ROOM_CHARACTERS)}`;

/** Runs `work`, and creates the room or the sandbox first if it is missing. */
export async function inPlace(
  call: ToolCall,
  place: SandboxAddress,
  work: () => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  const answer = await work();
  if (answer.ok || !isMissing(answer.problem.code)) return answer;
  const refused = await create(call, place, answer.problem.code === "room_not_found");
  return refused ?? (await work());
}

const isMissing = (code: string) => code === "room_not_found" || code === "sandbox_not_found";

async function create(
  call: ToolCall,
  { room_id, sandbox }: SandboxAddress,
  noRoom: boolean,
): Promise<ToolAnswer | null> {
  const room: Arguments = { room_id, ttl_seconds: TTL_SECONDS, labels: { made_by: "mcp" } };
  const made = noRoom ? await call.ask(roomCreate, room) : null;
  if (made && isRefused(made, "room_id_in_use")) return failure(made);
  const lifecycle = { idle_after_seconds: IDLE_SECONDS, on_idle: "hibernate" };
  const wait_timeout_ms = call.waitMs(45_000);
  const started = await call.ask(sandboxCreate, { room_id, agent_id: sandbox, lifecycle, wait_timeout_ms });
  return isRefused(started, "agent_id_in_use") ? failure(started) : null;
}

type Refusal = Extract<Reply, { kind: "problem" }>;

/** Whether a creation failed, other than with the code `unless`: another call of the same client may create it concurrently. */
function isRefused(reply: Reply, unless: string): reply is Refusal {
  return reply.kind === "problem" && reply.problem.code !== unless;
}

const failure = ({ problem, retry_after_seconds }: Refusal): ToolAnswer => ({
  ok: false,
  problem,
  retry_after_seconds,
});
