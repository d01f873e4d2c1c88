/**
 * Guests that render films of recordings: one at a time, organizations in turn, each restored from the film template and destroyed
 * afterwards.
 */
import { FILM_TEMPLATE } from "../../shared/api/recordings.ts";
import type { OrgId } from "../../shared/ids.ts";
import { ReservedSlot } from "../core/concurrency/reserved-slot.ts";
import { ServiceError } from "../core/service-error.ts";
import { withBuildGuest } from "../domain/templates/build-guest.ts";
import { usableSnapshot } from "../domain/templates/registry.ts";
import type { GuestLink } from "../host/guest-link/handshake.ts";
import type { Base } from "./base.ts";

const LINK_MS = 10_000;

export function makeFilmGuests(
  { paths, templates, inspected }: Pick<Base, "paths" | "templates" | "inspected">,
  hasMemoryFor: (memoryMib: number) => boolean,
) {
  const busy = () =>
    new ServiceError("insufficient_capacity", {
      detail: "Another film is being made on this host, or another organization is next.",
      hint: "Retry every half minute: organizations take turns, and each turn is reserved for a minute.",
    });
  const place = new ReservedSlot(busy);
  return async <T>(orgId: OrgId, work: (link: GuestLink) => Promise<T>): Promise<T> => {
    const leave = place.take(orgId);
    try {
      const image = await usableSnapshot(templates, FILM_TEMPLATE);
      if (!image) {
        throw new ServiceError("template_not_found", {
          detail: `This host has no template ${FILM_TEMPLATE} that it can start machines from, which make films.`,
          hint: `The operator builds it with \`roomd template build ${FILM_TEMPLATE}\`.`,
        });
      }
      if (!hasMemoryFor(image.hardware.base_memory_mib))
        throw new ServiceError("insufficient_capacity", {
          detail: "The host has no memory left for a machine that makes films.",
        });
      return await withBuildGuest(inspected.guestHost(), paths.film, image, null, async ({ connection }) =>
        work(await connection.link(LINK_MS)),
      );
    } finally {
      leave();
    }
  };
}
