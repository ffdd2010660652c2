// Questions that are asked again and again, one at a time: a service that does not answer must not collect them.

// Ask now, and again `pause` milliseconds after each answer, unless the page is hidden. Return what ends it.
export function repeated(ask, pause) {
  let timer = 0;
  let over = false;

  async function turn() {
    try {
      if (!document.hidden) await ask();
    } finally {
      if (!over) timer = setTimeout(turn, pause);
    }
  }

  turn();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
