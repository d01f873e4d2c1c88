/** The Directory of a standalone host: its own tables are authoritative, and one transaction checks and changes them. */
import type { Database } from "../db/transact.ts";
import { noSuchHost } from "./choose-host.ts";
import type { Directory } from "./directory.ts";

export function makeStandalone(database: Database, hostId: string): Directory {
  return {
    database,
    // Names are unique among this host's own rooms.
    place: () => {},
    chooseOther: () => {
      throw noSuchHost();
    },
    drain: () => Promise.reject(noSuchHost()),
    release: () => Promise.resolve(),
    placed: () => null,
    withOthers: (_queries, _orgId, here) => here,
    usedElsewhere: () => 0,
    isMember: () => true,
    isOthers: () => false,
    host: () => null,
    owner: () => null,
    trueOwner: () => Promise.resolve({ host_id: hostId, epoch: 1 }),
    freedBy: () => Promise.resolve({ host_id: hostId, isRemoval: false }),
    claim: () => Promise.reject(noSuchHost()),
    refuse: () => Promise.resolve(),
    onChange: () => {},
    close: () => Promise.resolve(),
  };
}
