/** Owns signals to a command: it is always its whole process group that gets them. */
import { constants } from "node:os";

/** Whether anyone was there to take it; 0 only asks that. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** What the host says within an exec stream; null is what this agent does not know. */
export function signalOf(event: unknown): NodeJS.Signals | null {
  if (typeof event !== "object" || event === null) return null;
  const { type, signal } = event as Partial<Record<"type" | "signal", unknown>>;
  return type === "signal" && isSignal(signal) ? signal : null;
}

/** Bun has no names for the real-time ones. */
export function signalName(signal: NodeJS.Signals | number | null): string | null {
  return typeof signal === "number" ? `SIG${signal}` : signal;
}

function isSignal(name: unknown): name is NodeJS.Signals {
  return typeof name === "string" && Object.hasOwn(constants.signals, name);
}
