/** Texts for the properties of a sandbox and the end of a command. */
import type { ExitCause, SandboxRecord, StartMode } from "../../../shared/api/sandboxes.ts";

const STARTS: Record<StartMode, string> = {
  pool: "the warm pool",
  snapshot: "a snapshot",
  cold: "a cold boot",
};
export const startWords = (mode: StartMode | null): string => (mode === null ? "not started yet" : STARTS[mode]);

const CAUSES: Record<ExitCause, string> = {
  user_requested: "a client destroyed it",
  expired: "its lifetime was over",
  idle: "it was idle for its idle timeout",
  oom: "its memory ran out",
  guest_panic: "its kernel panicked",
  vmm_crash: "its virtual machine crashed",
  host_restart: "its host was restarted",
  credits_exhausted: "the organization's credits ran out",
  host_evacuated: "its room went to another host",
};
export const causeWords = (cause: ExitCause): string => CAUSES[cause];

const MODES = {
  none: "nowhere: it has no network, or its allowlist is empty",
  allowlist: "only to its allowlist",
  public: "to every public address",
} as const satisfies Record<SandboxRecord["egress"]["mode"], string>;
export const egressWords = ({ mode }: SandboxRecord["egress"]): string => MODES[mode];

/** The stages of a sandbox's start, longest first: `agent_hello_ms` is a part of `agent_ms`, and named "agent: hello". */
export function stagesOf(boot: Record<string, number>): { name: string; ms: number }[] {
  const names = Object.keys(boot);
  const isWhole = (name: string) => names.includes(`${name}_ms`);
  return Object.entries(boot)
    .map(([field, ms]) => {
      const [first = "", ...rest] = field.replace(/_ms$/, "").split("_");
      const name = rest.length > 0 && isWhole(first) ? `${first}: ${rest.join(" ")}` : [first, ...rest].join(" ");
      return { name, ms };
    })
    .sort((one, other) => other.ms - one.ms);
}
