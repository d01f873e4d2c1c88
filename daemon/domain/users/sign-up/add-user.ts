/** Creation of users, for all sign-up paths: one per address. */
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { dropLinks, insertUser } from "../store.ts";
import type { UserRow } from "../table.ts";

/** Within a transaction. The setup link is for the first user, and is void afterwards. Throws already_exists. */
export function addUser(queries: Queries, user: UserRow): void {
  try {
    insertUser(queries, user);
  } catch (error) {
    if (!violatesUnique(error, "users.email")) throw error;
    throw new ServiceError("already_exists", {
      detail: `An account with the address ${user.email} already exists.`,
      cause: error,
    });
  }
  dropLinks(queries, "setup", null);
}
