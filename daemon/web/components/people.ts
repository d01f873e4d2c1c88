/** Names of the organization's members, which audit records do not have. Requested once, when a page shows the first member. */
import { signal } from "@preact/signals";
import type { memberList } from "../../../shared/api/people/members.ts";
import { get } from "../data/api.ts";

const names = signal<ReadonlyMap<string, string>>(new Map());
let isRequested = false;

async function load(): Promise<void> {
  const { items } = await get<typeof memberList>("/v1/orgs/self/members");
  names.value = new Map(items.map(({ user_id, name }) => [user_id, name]));
}

/** Requests the names. Without a response, members are shown without a name. */
export function wantNames(): void {
  if (isRequested) return;
  isRequested = true;
  load().catch(() => {});
}

/** The name of a member; undefined until it is loaded, and for a former member. */
export const nameOf = (userId: string): string | undefined => names.value.get(userId);
