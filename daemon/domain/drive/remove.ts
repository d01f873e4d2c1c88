/** Owns fs_delete: an entry of any kind; a link is deleted, not what it points to. */
import { fsDelete } from "../../../shared/api/drive.ts";
import type { Bound } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { erase } from "../../host/files/erase.ts";
import { guestPath, parsePath, pathRule, shownPath, splitPath } from "./path.ts";
import { freedBytes } from "./place-file.ts";
import { bindDrive, type Drive } from "./verb.ts";

export function remove(drive: Drive): Bound {
  return bindDrive(drive, fsDelete, {
    rules: (input) => pathRule("path", input.path),
    run: async (call, input, { room, root }) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      const { parent, name } = splitPath(path);
      using directory = root.directory(parent);
      const facts = directory.facts(name);
      if (!facts) throw new ServiceError("path_not_found");
      const usage = drive.usage.of(room);
      if (facts.type !== "directory") {
        await directory.unlink(name);
        const lastName = facts.links === 1;
        usage.change({
          used_bytes: -freedBytes(facts),
          file_count: facts.type === "file" && lastName ? -1 : 0,
          entry_count: -1,
        });
      } else if (input.recursive) {
        await erase(directory, name, drive.giveUpSpace);
        usage.invalidate();
      } else {
        await directory.removeDirectory(name);
        usage.change({ used_bytes: -facts.allocated_bytes, file_count: 0, entry_count: -1 });
      }
      await directory.sync();
      return { outcome: "ok", body: { path: shownPath(path), guest_path: guestPath(path), state: "deleted" as const } };
    },
  });
}
