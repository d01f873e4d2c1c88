/** A person's sign-in methods: the last one cannot be removed. */
import type { UserId } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { listIdentities } from "../identities/identities-store.ts";
import { getUser } from "../store.ts";
import { listPasskeys } from "./passkeys-store.ts";

/** Sign-in methods that the service accepts now: passkeys made at this name, and accounts of this issuer. */
export interface AcceptedMethods {
  rp_id: string | null;
  issuer: URL | null;
}

/** Within the transaction that removes a sign-in method. Throws last_way_in. */
export function requireWayLeft(queries: Queries, userId: UserId, { rp_id, issuer }: AcceptedMethods): void {
  const hasPassword = (getUser(queries, userId)?.password_hash ?? null) !== null;
  const hasPasskey = listPasskeys(queries, userId).some((each) => each.rp_id === rp_id);
  const hasIdentity = listIdentities(queries, userId).some(
    (each) => issuer !== null && sameIssuer(each.issuer, issuer),
  );
  if (hasPassword || hasPasskey || hasIdentity) return;
  throw new ServiceError("last_way_in");
}

export const sameIssuer = (kept: string, issuer: URL): boolean => URL.parse(kept)?.href === issuer.href;
