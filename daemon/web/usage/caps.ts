/** Usage of each cap. Pure. */
import type { UsageReport } from "../../../shared/api/usage.ts";
import { numberText } from "./numbers.ts";

export interface Cap {
  name: string;
  used: string;
  most: string;
  /** From this value on the service warns. */
  soft: string;
  share: number;
  isOverSoft: boolean;
}

type Caps = Pick<
  UsageReport,
  "rooms" | "sandboxes" | "memory_mib" | "disk_gib" | "template_mib" | "drive" | "guest_cids"
>;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function sizeText(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)));
  return `${numberText(bytes / 1024 ** unit)} ${UNITS[unit]}`;
}

const mibText = (mib: number) => sizeText(mib * 1024 ** 2);

export function capsOf({ rooms, sandboxes, memory_mib, disk_gib, template_mib, drive, guest_cids }: Caps): Cap[] {
  const cap = (name: string, used: number, soft: number, hard: number, text: (value: number) => string): Cap => ({
    name,
    used: text(used),
    most: text(hard),
    soft: text(soft),
    share: hard > 0 ? used / hard : 0,
    isOverSoft: used > soft,
  });
  const { total } = guest_cids;
  return [
    cap("Rooms", rooms.active, rooms.soft_cap, rooms.hard_cap, numberText),
    cap("Sandboxes", sandboxes.active, sandboxes.soft_cap, sandboxes.hard_cap, numberText),
    cap("Memory of sandboxes", memory_mib.allocated, memory_mib.soft_cap, memory_mib.hard_cap, mibText),
    cap("Disks of sandboxes (maximum size)", disk_gib.allocated, disk_gib.soft_cap, disk_gib.hard_cap, (gib) =>
      sizeText(gib * 1024 ** 3),
    ),
    cap("Custom templates", template_mib.used, template_mib.soft_cap, template_mib.hard_cap, mibText),
    cap("Drives of rooms", drive.used_bytes, drive.soft_cap_bytes, drive.hard_cap_bytes, sizeText),
    cap("Guest addresses (CIDs) of the host", guest_cids.in_use, total, total, numberText),
  ];
}
