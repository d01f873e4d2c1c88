/** Checks whether the caller's key or session allows an operation. */
import type { Operation } from "../../../shared/api/contract.ts";
import type { Caller, SessionFacts } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";

type OperationAccess = Pick<Operation, "access" | "ofAccount" | "openToOperator" | "watched" | "wantsProof">;

/** Throws insufficient_scope, hub_is_read_only, proof_required. An organization's administrator has every scope. */
export function requireScope(caller: Caller, operation: OperationAccess): void {
  const { access } = operation;
  if (access === "open" || access === "key" || (operation.openToOperator && caller.kind === "operator")) return;
  if (caller.session) {
    requireOfSession(caller, caller.session, operation);
    return;
  }
  if (access === "account") {
    throw new ServiceError("insufficient_scope", {
      detail: "The call concerns a user's account and needs a web session.",
      details: { required: access },
    });
  }
  if (access === "operator") {
    if (caller.kind === "operator") return;
    throw new ServiceError("insufficient_scope", {
      detail: "The call needs the operator's key.",
      details: { required: access },
    });
  }
  if (caller.scopes.includes(access) || caller.scopes.includes("org:admin")) return;
  throw new ServiceError("insufficient_scope", {
    detail: `The call needs the scope ${access}, which the key does not have.`,
    details: { required: access },
  });
}

/** A session can read, and manage the account; changes in rooms need keys. */
function requireOfSession(
  { scopes }: Caller,
  { role, gives, proved_until }: SessionFacts,
  { access, ofAccount, watched, wantsProof }: OperationAccess,
): void {
  const reads: readonly string[] = scopes;
  if (ofAccount && gives.length === 0) {
    throw new ServiceError("insufficient_scope", {
      detail: `The role ${role} does not permit the call.`,
      hint: "An owner or admin can change your role.",
      details: { required: access },
    });
  }
  const mayLook = watched || reads.includes(access);
  if (access !== "account" && !ofAccount && !mayLook) throw new ServiceError("hub_is_read_only");
  if (wantsProof && proved_until <= now()) throw new ServiceError("proof_required");
}
