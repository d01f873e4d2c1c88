/** Display of a sandbox's state. */
import type { SandboxState as Name } from "../../../shared/api/sandboxes.ts";
import { type Look, State } from "./parts.tsx";

const LOOKS: Record<Name, Look> = {
  creating: "busy",
  starting: "busy",
  running: "ok",
  pausing: "busy",
  paused: "wait",
  hibernating: "busy",
  hibernated: "quiet",
  resuming: "busy",
  failed: "bad",
  destroying: "busy",
  destroyed: "quiet",
};

/** Null: an agent without a sandbox in the room. */
export function SandboxState({ state }: { state: string | null }) {
  if (state === null) return <State look="quiet">outside</State>;
  return <State look={LOOKS[state as Name] ?? "quiet"}>{state === "paused" ? "standby" : state}</State>;
}
