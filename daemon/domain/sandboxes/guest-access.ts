/** Access of a call to its sandbox's guest, and the errors if it fails. */
import { ServiceError } from "../../core/service-error.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { TerminalTarget } from "../terminals/deps.ts";
import type { Supervisors } from "./lifecycle/supervisors.ts";

/** How long to wait for a guest that is reconnecting. */
const LINK_DEADLINE_MS = 10_000;

/** Throws guest_unreachable, with these details. */
export async function linkOf(
  supervisors: Supervisors,
  sandboxId: string,
  details?: Record<string, unknown>,
): Promise<GuestLink> {
  const about = details ? { details } : {};
  const supervisor = supervisors.get(sandboxId);
  if (!supervisor) throw new ServiceError("guest_unreachable", about);
  return await supervisor.link(LINK_DEADLINE_MS).catch((cause: unknown) => {
    throw cause instanceof ServiceError ? cause : new ServiceError("guest_unreachable", { ...about, cause });
  });
}

/** Runs `work` as use of the sandbox, so that it is not idle; observation is not use. */
export async function inUse<T>(
  supervisors: Supervisors,
  { row, isLookedAt }: Pick<TerminalTarget, "row" | "isLookedAt">,
  work: () => Promise<T>,
): Promise<T> {
  return isLookedAt ? await work() : await supervisors.use(row.sandbox_id, work);
}
