/** Owns the machines that make films of recordings: one at a time, restored from its template and gone afterwards. */
import { FILM_TEMPLATE } from "../../shared/api/recordings.ts";
import { Places } from "../core/places.ts";
import { ServiceError } from "../core/service-error.ts";
import { usableSnapshot } from "../domain/templates/registry.ts";
import { withTrialGuest } from "../domain/templates/trial-guest.ts";
import type { GuestLink } from "../host/guest-link/handshake.ts";
import type { Base } from "./base.ts";

const LINK_MS = 10_000;

export function makeFilmGuests(
  { paths, templates, inspected }: Pick<Base, "paths" | "templates" | "inspected">,
  hasMemoryFor: (memoryMib: number) => boolean,
) {
  const busy = () => new ServiceError("insufficient_capacity", { detail: "Another film is being made on this host." });
  const places = new Places(1, busy);
  return async <T>(work: (link: GuestLink) => Promise<T>): Promise<T> => {
    const leave = places.take("films");
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
      return await withTrialGuest(inspected.guestHost(), paths.film, image, null, async ({ connection }) =>
        work(await connection.link(LINK_MS)),
      );
    } finally {
      leave();
    }
  };
}
