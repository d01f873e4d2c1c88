/** Empties this host: moves its rooms one after another, each to a host that is chosen as for a new room. */
import { hostEvacuate } from "../../../../shared/api/hosts.ts";
import type { KeyId } from "../../../../shared/ids.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { ServiceError, saidOf } from "../../../core/service-error.ts";
import { liveRooms } from "../store.ts";
import type { RoomRow } from "../table.ts";
import type { MoveDeps } from "./deps.ts";

type Move = (row: RoomRow, to: string, force: boolean, keyId: KeyId) => Promise<unknown>;

export function makeEvacuate({ database, directory, hostId, log }: MoveDeps, move: Move): Bound {
  return bind(hostEvacuate, {
    run: async (call, { host, skip = [], force = false }) => {
      if (host !== hostId)
        throw new ServiceError("invalid_state", { detail: `This host is ${hostId}, and no other host is ${host}.` });
      await directory.drain();
      const stay = new Set(skip);
      const rooms = liveRooms(database.queries).filter(
        ({ room_uid, state }) => state === "active" && !stay.has(room_uid),
      );
      const [row] = rooms;
      if (!row) return { outcome: "ok", body: { room: null, left: 0 } };
      const { org_id, room_id, room_uid } = row;
      const named = { org_id, room_id, room_uid };
      const left = rooms.length - 1;
      try {
        const to = directory.chooseOther(row).host_id;
        await move(row, to, force, call.caller.key_id);
        call.audit.details = { ...named, to, left };
        return { outcome: "ok", body: { room: { ...named, to, problem: null }, left } };
      } catch (error) {
        const code = error instanceof ServiceError ? error.code : "internal";
        log.warn("failed to move a room", { room_uid, error: String(error) });
        call.audit.details = { ...named, problem: code, left };
        return {
          outcome: "ok",
          body: { room: { ...named, to: null, problem: { code, detail: saidOf(error) } }, left },
        };
      }
    },
  });
}
