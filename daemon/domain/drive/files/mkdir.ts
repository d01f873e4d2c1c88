/** fs_mkdir: makes a directory and its missing parents. */
import { fsMkdir } from "../../../../shared/api/drive.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { HERE } from "../../../host/files/raw-path.ts";
import { DIRECTORY_MODE, entryOf, factsAt, parseMode } from "../entry.ts";
import { ownerRule, parseOwner } from "../owner.ts";
import { guestPath, parsePath, pathRule, shownPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";
import { openOrMake } from "./parents.ts";

export function mkdir(drive: Drive): Bound {
  return bindDrive(drive, fsMkdir, {
    rules: (input) => [...pathRule("path", input.path), ...ownerRule(input.owner)],
    run: async (call, input, { room, root, usage }) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      const there = path === HERE ? null : factsAt(root, path);
      if (there?.type === "file" || there?.type === "other") throw new ServiceError("already_exists");
      using claim = await usage.claim(room.drive_limit_bytes, there === null ? 1 : 0);
      claim.grow(0, 0);
      const { directory, created } = await openOrMake(drive, { room, root }, path, {
        mode: parseMode(input.mode, DIRECTORY_MODE),
        owner: parseOwner(input.owner),
      });
      using made = directory;
      const facts = made.ownFacts();
      claim.settle(created ? { added: { used_bytes: facts.allocated_bytes, entry_count: 1 } } : {});
      const body = { guest_path: guestPath(path), ...entryOf(facts, path), created };
      return { outcome: created ? "created" : "existing", body };
    },
  });
}
