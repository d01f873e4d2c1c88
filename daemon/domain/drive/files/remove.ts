/** fs_delete: an entry of any kind; a link is deleted, not its target. */
import { fsDelete } from "../../../../shared/api/drive.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { erase } from "../../../host/files/erase.ts";
import { guestPath, parsePath, pathRule, shownPath, splitPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";
import { freedBy } from "./place-file.ts";

export function remove(drive: Drive): Bound {
  return bindDrive(drive, fsDelete, {
    rules: (input) => pathRule("path", input.path),
    run: async (call, input, { room, root, usage }) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      const { parent, name } = splitPath(path);
      using directory = root.directory(parent);
      const facts = directory.facts(name);
      if (!facts) throw new ServiceError("path_not_found");
      const since = usage.moment;
      await drive.stillness.passing({ room, root }, async () => {
        if (facts.type === "directory" && input.recursive) {
          await erase(directory, name, {
            giveUp: drive.giveUpSpace,
            onFreed: (freed) => usage.change({ freed }, since),
          });
        } else {
          await (facts.type === "directory" ? directory.removeDirectory(name) : directory.unlink(name));
          usage.change({ freed: freedBy(facts) }, since);
        }
      });
      await directory.sync();
      return { outcome: "ok", body: { path: shownPath(path), guest_path: guestPath(path), state: "deleted" as const } };
    },
  });
}
