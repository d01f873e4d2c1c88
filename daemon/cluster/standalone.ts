/** The Directory of a standalone host: its own tables are authoritative, and one transaction checks and changes them. */
import type { Database } from "../db/transact.ts";
import { noSuchHost } from "./choose-host.ts";
import type { Directory } from "./directory.ts";

export function makeStandalone(database: Database, hostId: string): Directory {
  return {
    database,
    // Names are unique among this host's own rooms.
    place: () => {},
    choose: ({ host, host_labels = {} }) => {
      if ((host ?? hostId) !== hostId) throw noSuchHost();
      if (Object.keys(host_labels).length > 0) throw noSuchHost("host_labels");
      return null;
    },
    chooseOther: () => {
      throw noSuchHost();
    },
    drain: () => Promise.reject(noSuchHost()),
    release: () => Promise.resolve(),
    elsewhere: () => Promise.resolve(null),
    others: () => [],
    placedOn: () => [],
    withOthers: (_queries, _orgId, here) => here,
    usedElsewhere: () => 0,
    isMember: () => true,
    hasFollowed: () => true,
    isOthers: () => false,
    host: () => null,
    owner: () => null,
    trueOwner: () => Promise.resolve({ host_id: hostId, epoch: 1 }),
    freedBy: () => Promise.resolve({ host_id: hostId, isRemoval: false }),
    claim: () => Promise.reject(noSuchHost()),
    refuse: () => Promise.resolve(),
    doneBy: () => null,
    onChange: () => {},
    close: () => Promise.resolve(),
  };
}
