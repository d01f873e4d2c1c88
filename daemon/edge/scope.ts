/** Checks whether the caller's key allows an operation. */
import type { Access } from "../../shared/api/contract.ts";
import type { Caller } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";

/** Throws insufficient_scope. An organization's administrator has every scope. */
export function requireScope(caller: Caller, access: Access): void {
  if (access === "open" || access === "key") return;
  if (access === "operator") {
    if (caller.kind === "operator") return;
    throw new ServiceError("insufficient_scope", {
      detail: "This needs the operator's key.",
      details: { required: access },
    });
  }
  if (caller.scopes.includes(access) || caller.scopes.includes("org:admin")) return;
  throw new ServiceError("insufficient_scope", {
    detail: `This needs the scope ${access}, which the key does not have.`,
    details: { required: access },
  });
}
