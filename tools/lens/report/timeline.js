// A slider, Play and the arrow keys, over the moments of a training.

/** draw(i) is called with every position that is chosen; pause: milliseconds a position while it plays. `state.at` is the position. */
function timeline(count, state, pause, draw) {
  let playing = null;
  const slider = $("slider"), button = $("play");
  function choose(i) {
    state.at = Math.max(0, Math.min(count - 1, i));
    slider.value = state.at;
    draw(state.at);
  }
  function play(on) {
    clearInterval(playing);
    playing = null;
    document.body.classList.toggle("playing", on);
    button.textContent = on ? "❚❚" : "▶";
    button.title = on ? "Pause; key: space" : "Play; key: space";
    if (!on) return;
    if (state.at === count - 1) choose(0);
    playing = setInterval(() => { if (state.at >= count - 1) play(false); else choose(state.at + 1); }, pause);
  }
  slider.max = count - 1;
  slider.addEventListener("input", () => { play(false); choose(+slider.value); });
  button.onclick = () => play(playing === null);
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, td, select, textarea")) return;
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") { play(false); choose(state.at + (e.key === "ArrowLeft" ? -1 : 1)); }
    else if (e.key === " " && !e.target.closest("button, a")) play(playing === null);
    else return;
    e.preventDefault();
  });
  choose(state.at);
  return choose;
}
