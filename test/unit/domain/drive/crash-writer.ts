/** Writes to a drive until it is killed, and prints each acknowledged write. Argument: the drive. */
import { writeSync } from "node:fs";
import { RoomFixture, streamOf } from "./room-fixture.ts";

const room = new RoomFixture({ drive_directory: process.argv[2] ?? "" });
const first = Number(process.argv[3]);
const acknowledge = (label: string) => writeSync(1, `${label}\n`);

for (let count = first; ; count++) {
  const content = `${count} `.repeat(50_000);
  await Promise.all([
    room.call("fs_write", { path: "d/written", content }).then(() => acknowledge(`written ${count}`)),
    room.call("file_put", { path: "d/put" }, { body: streamOf(content) }).then(() => acknowledge(`put ${count}`)),
    room.call("fs_write", { path: "log", content: `${count}\n`, append: true }).then(() => acknowledge(`log ${count}`)),
    room
      .call("fs_mkdir", { path: `tree/${count}/a/b` })
      .then(() => room.call("fs_delete", { path: `tree/${count}`, recursive: true }))
      .then(() => acknowledge(`tree ${count}`)),
  ]);
}
